"""`CensoredGP`, its presets, settings, files, and functions of a fitted model."""
