"""The lab: two agents side by side in the browser, and the credit that planning passes between states.

    backcast lab

`config` describes a scene, `scene` makes it, `walker` and `lockstep` run its agents, `credit` and `inspection` explain
what they do, `session` serves one page, and `app`, `guard` and `serving` control access. The page itself is in `page`.
"""
