"""The language server: turns what runs captured into LSP.

It never imports torch; scripts run in their own processes, started through `irscope.driver.driver`.  No other part of
irscope knows LSP.
"""
