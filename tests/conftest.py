from hypothesis import settings

settings.register_profile("backcast", deadline=None, print_blob=True)
settings.load_profile("backcast")
