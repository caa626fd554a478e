"""Foundations: arrays, errors, files, random numbers, and the compiler."""
