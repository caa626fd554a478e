"""Linear values and the spectrum of models that plan with them, from expectations to corrections learned themselves."""
