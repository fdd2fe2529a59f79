"""Floor 2: the EM loop and its four answers; NumPy in, NumPy out."""
