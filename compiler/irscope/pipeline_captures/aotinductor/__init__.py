"""What captures for AOTInductor: Inductor's stages of an exported program, and what its package has."""
