"""The commands: thin functions over `CensoredGP`. Each module has a Typer app of its commands."""
