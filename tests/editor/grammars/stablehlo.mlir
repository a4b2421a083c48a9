module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x8xf32> {mhlo.sharding = "{replicated}"}, %arg1: tensor<8x?xbf16>) -> (tensor<4x16xf32> {jax.result_info = ""}) {
    %0 = stablehlo.convert %arg1 : (tensor<8x?xbf16>) -> tensor<8x16xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
    %3:2 = "stablehlo.while"(%2, %1) ({
    ^bb0(%arg2: tensor<4xf32>, %arg3: tensor<4x16xf32>):
      stablehlo.return %arg2 : tensor<4xf32>
    }) : (tensor<4xf32>, tensor<4x16xf32>) -> (tensor<4xf32>, tensor<4x16xf32>)
    return %3#1 : tensor<4x16xf32>
  }
}
