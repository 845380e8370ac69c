#include "numerics/kernel_table.h"
#include "numerics/special_function_kernels.h"
#include "numerics/tile_kernels.h"

namespace contraflow {

const KernelTable kAvx2Kernels{map<Exp>, map<Erf>, map<Tanh>, map<Log>, accumulate_tile_kernel};

}  // namespace contraflow
