"""From raw samples to a model's inputs: lags, phases, windows with their features, and a program around the model."""
