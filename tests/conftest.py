import signal

from hypothesis import settings

settings.register_profile("backcast", deadline=None, print_blob=True)
settings.load_profile("backcast")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background: commands under test must hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
