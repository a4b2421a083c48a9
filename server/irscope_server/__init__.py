"""The language server: turns what runs captured into LSP.

It never imports torch; scripts run in their own processes, started through `irscope.driver.driver`.  Nothing else in
irscope knows of LSP.
"""
