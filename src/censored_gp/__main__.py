"""The command line, by ``python -m censored_gp``."""

from censored_gp.cli.main import app

__all__: list[str] = []

if __name__ == "__main__":
    app(prog_name="censored-gp")
