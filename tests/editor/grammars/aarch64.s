kernel:
	.loc	1 14 9
	stp	x29, x30, [sp, #-16]!
	mov	x29, sp
	mov	w8, #16
	adrp	x9, :got:flag
	ldr	x9, [x9, :got_lo12:flag]
.LBB0_1:
	ldp	q0, q1, [x0], #32
	fadd	v0.4s, v0.4s, v1.4s
	fmla	v0.4s, v1.4s, v2.s[0]
	subs	x8, x8, #8
	b.ne	.LBB0_1
	cbz	x8, .LBB0_2 // done
	bl	memcpy
.LBB0_2:
	ldp	x29, x30, [sp], #16
	ret
