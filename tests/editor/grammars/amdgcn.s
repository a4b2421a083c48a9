	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.globl	axpy_kernel                     ; -- Begin function axpy_kernel
axpy_kernel:                            ; @axpy_kernel
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_dwordx4 v[2:5], v1, s[4:5]
	v_pk_add_f32 v[2:3], v[2:3], v[4:5]
	s_cbranch_execz .LBB0_2
	global_store_dwordx4 v1, v[2:5], s[6:7]
.LBB0_2:
	s_endpgm
