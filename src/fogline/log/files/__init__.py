"""The files of one log: segments, frames, positions, locks."""
