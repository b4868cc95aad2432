"""The version, which the package and what it says to servers share."""

__version__ = "0.1.0"
