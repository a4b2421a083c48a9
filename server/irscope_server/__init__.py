"""The language server: turns what runs captured into LSP.

It never imports torch; scripts run in processes of their own, started through `irscope.driver`.  Nothing else in
irscope knows of LSP.
"""
