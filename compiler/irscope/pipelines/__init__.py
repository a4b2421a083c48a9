"""The declarations of pipelines: one module or package for each, found by `irscope.pipelines.registry`."""
