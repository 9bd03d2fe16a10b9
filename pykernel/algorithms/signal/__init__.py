"""From raw samples to a model's inputs: windows and their features, lags, phases, and a program around the model."""
