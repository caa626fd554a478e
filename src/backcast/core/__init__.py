"""What everything else stands on: arrays, errors, files, random numbers, and the compiler."""
