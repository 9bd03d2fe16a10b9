"""From raw samples to what a model sees: windows and their features, lags, phases; and the program around a model."""
