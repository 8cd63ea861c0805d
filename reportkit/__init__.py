"""How to measure, judge and publish the claims of an article; knows no article itself."""

__version__ = "0.1.0"
