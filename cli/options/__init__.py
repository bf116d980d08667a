"""The options of commands, and the settings behind them."""
