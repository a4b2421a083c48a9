"""What captures for each pipeline: a package for each, which its declaration in `irscope.pipelines` names."""
