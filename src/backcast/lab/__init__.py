"""The lab: two agents side by side in the browser, and the credit that planning passes between states.

    backcast lab

`config` says what is on the screen, `scene` makes it, `walker` and `lockstep` move it, `credit` and `inspection`
explain it, `session` talks to one page, and `app`, `guard` and `serving` let pages in. The page itself is in `page`.
"""
