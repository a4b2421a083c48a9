kernel._omp_fn.0:
	leaq	8(%rsp), %r10
	andq	$-64, %rsp
	pushq	-8(%r10)
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%r14
	pushq	%r13
	pushq	%r12
	movq	%rdi, %r12
	pushq	%r10
	pushq	%rbx
	subq	$264, %rsp
	call	omp_get_thread_num@PLT
	movslq	%eax, %rbx
	call	omp_get_num_threads@PLT
	movslq	%eax, %rcx
	movl	$512, %eax
	cqto
	idivq	%rcx
	cmpq	%rdx, %rbx
	jl	.L2
.L7:
	imulq	%rax, %rbx
	addq	%rdx, %rbx
	addq	%rbx, %rax
	cmpq	%rax, %rbx
	jge	.L9
	salq	$4, %rax
	vbroadcastss	.LC5(%rip), %zmm4
	vbroadcastss	.LC11(%rip), %zmm3
	movq	8(%r12), %r13
	movq	(%r12), %r14
	salq	$4, %rbx
	movq	%rax, %r12
.L5:
	cmpq	$8191, %rbx
	ja	.L6
	vmovups	(%r14,%rbx,4), %zmm0
	vbroadcastss	.LC13(%rip), %zmm2
	vmulps	.LC0(%rip), %zmm0, %zmm5
	vmulps	.LC2(%rip), %zmm0, %zmm0
	vmovaps	%zmm5, -112(%rbp)
	vandps	.LC8(%rip), %zmm0, %zmm1
	vandps	%zmm0, %zmm4, %zmm6
	vfmadd132ps	.LC6(%rip), %zmm3, %zmm1
	vmulps	%zmm0, %zmm0, %zmm0
	vmovaps	%zmm6, -176(%rbp)
	vdivps	%zmm1, %zmm3, %zmm1
	vfmadd213ps	.LC14(%rip), %zmm1, %zmm2
	vxorps	%zmm0, %zmm4, %zmm0
	vmovaps	%zmm1, -304(%rbp)
	vfmadd213ps	.LC16(%rip), %zmm1, %zmm2
	vfmadd213ps	.LC18(%rip), %zmm1, %zmm2
	vfmadd213ps	.LC21(%rip){1to16}, %zmm1, %zmm2
	vmovaps	%zmm2, -240(%rbp)
	call	Sleef_expf16_u10@PLT
	vmovaps	.LC4(%rip), %zmm4
	vmovaps	-304(%rbp), %zmm1
	vxorps	%zmm0, %zmm4, %zmm0
	vmulps	%zmm0, %zmm1, %zmm1
	vmovaps	.LC10(%rip), %zmm3
	vfmadd132ps	-240(%rbp), %zmm3, %zmm1
	vxorps	-176(%rbp), %zmm1, %zmm0
	vaddps	%zmm3, %zmm0, %zmm0
	vmulps	-112(%rbp), %zmm0, %zmm0
	vmovups	%zmm0, 0(%r13,%rbx,4)
.L6:
	addq	$16, %rbx
	cmpq	%rbx, %r12
	jg	.L5
	vzeroupper
.L9:
	addq	$264, %rsp
	popq	%rbx
	popq	%r10
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%rbp
	leaq	-8(%r10), %rsp
	ret
.L2:
	incq	%rax
	xorl	%edx, %edx
	jmp	.L7

kernel:
	pushq	%rbp
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	movq	%rsp, %rbp
	pushq	%r13
	leaq	-120(%rbp), %rax
	pushq	%r12
	leaq	-64(%rbp), %r12
	pushq	%rbx
	subq	$104, %rsp
	movq	%rsi, -56(%rbp)
	movq	%rdi, -64(%rbp)
	movq	inductor_cpu_integer_div_error_flag@GOTPCREL(%rip), %rbx
	movq	%r12, %rsi
	leaq	kernel._omp_fn.0(%rip), %rdi
	movq	%rax, (%rbx)
	movl	$0, -120(%rbp)
	call	GOMP_parallel@PLT
	movq	$0, (%rbx)
	movl	-120(%rbp), %eax
	testl	%eax, %eax
	jne	.L113
	leaq	-24(%rbp), %rsp
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%rbp
	ret

kernel.cold:
.L113:
	movl	$16, %edi
	call	__cxa_allocate_exception@PLT
	movq	%rax, %r13
	leaq	.LC24(%rip), %rax
	movq	%rax, -72(%rbp)
	leaq	.LC25(%rip), %rax
	movq	%rax, -80(%rbp)
	movq	%rax, -104(%rbp)
	leaq	.LC28(%rip), %rax
	movq	%rax, -112(%rbp)
	leaq	.LC26(%rip), %rcx
	leaq	.LC27(%rip), %rdx
	leaq	-72(%rbp), %rax
	movq	%rcx, -88(%rbp)
	movq	%rdx, -96(%rbp)
	movl	$827, -116(%rbp)
	pushq	%rax
	leaq	-80(%rbp), %rax
	leaq	-96(%rbp), %rcx
	pushq	%rax
	leaq	-104(%rbp), %rdx
	leaq	-112(%rbp), %rsi
	leaq	-116(%rbp), %r9
	leaq	-88(%rbp), %r8
	movq	%r12, %rdi
	call	c10::detail::_str_wrapper<char const*, char const*, char const*, char const*, int const&, char const*, char const*>::call[abi:cxx11](char const* const&, char const* const&, char const* const&, char const* const&, int const&, char const* const&, char const* const&)@PLT
	popq	%rax
	popq	%rdx
	movq	%r12, %rsi
	movq	%r13, %rdi
	call	std::runtime_error::runtime_error(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)@PLT
	movq	-64(%rbp), %rdi
	leaq	-48(%rbp), %rax
	cmpq	%rax, %rdi
	je	.L107
	movq	-48(%rbp), %rax
	leaq	1(%rax), %rsi
	call	operator delete(void*, unsigned long)@PLT
.L107:
	movq	std::runtime_error::~runtime_error()@GOTPCREL(%rip), %rdx
	movq	typeinfo for std::runtime_error@GOTPCREL(%rip), %rsi
	movq	%r13, %rdi
	call	__cxa_throw@PLT
	movq	%rax, %rbx
	vzeroupper
.L110:
	movq	%r13, %rdi
	call	__cxa_free_exception@PLT
	movq	%rbx, %rdi
	call	_Unwind_Resume@PLT
	movq	-64(%rbp), %rdi
	movq	%rax, %rbx
	leaq	-48(%rbp), %rax
	cmpq	%rax, %rdi
	je	.L114
	movq	-48(%rbp), %rax
	leaq	1(%rax), %rsi
	vzeroupper
	call	operator delete(void*, unsigned long)@PLT
	jmp	.L110
.L114:
	vzeroupper
	jmp	.L110

.LC24:
	.string	"ZeroDivisionError"

.LC25:
	.string	", "

.LC26:
	.string	":"

.LC27:
	.string	"/venv/site-packages/torch/include/torch/csrc/inductor/cpp_prefix.h"

.LC28:
	.string	"inductor_cpu_throw_if_integer_div_error"

.LC0:
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608
	.long	1056964608

.LC2:
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283
	.long	1060439283

.LC4:
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648
	.long	-2147483648

.LC6:
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525
	.long	1051179525

.LC8:
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647
	.long	2147483647

.LC10:
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216
	.long	1065353216

.LC13:
	.long	1065868322

.LC14:
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117
	.long	-1078329117

.LC16:
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291
	.long	1068888291

.LC18:
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130
	.long	-1097750130

.LC21:
	.long	1048738054
