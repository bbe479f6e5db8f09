"""The control loop: reconciles the desired and the observed state."""
