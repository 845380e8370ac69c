#include "report/report_csv.h"

#include <fmt/format.h>

namespace contraflow {

// No name holds a comma or a quote: they are made of the network's part names.
std::string kernels_csv(const RunReport& report) {
    std::string text = "step,name,class,phase,unit,units,start,end,cycles,macs,busy";
    for (const auto& stall : stalls_of({})) {
        text += "," + stall.first;
    }
    text += "\n";
    for (const KernelReport& kernel : report.kernels) {
        text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}", kernel.step, kernel.name,
                            to_string(kernel.kernel_class), to_string(kernel.phase), kernel.unit, kernel.units,
                            kernel.start, kernel.end, kernel.end - kernel.start, kernel.macs, kernel.cycles.busy);
        for (const auto& stall : stalls_of(kernel.cycles)) {
            text += fmt::format(",{}", stall.second);
        }
        text += "\n";
    }
    return text;
}

std::string memory_csv(const MemoryReport& memory) {
    std::string text = "name,class,place,ram,bytes,words_occupied,first_kernel,last_kernel\n";
    for (const TensorReport& tensor : memory.tensors) {
        text += fmt::format("{},{},{},{},{},{},{},{}\n", tensor.name, to_string(tensor.tensor_class),
                            to_string(tensor.kind), tensor.ram, tensor.bytes, tensor.words_occupied,
                            tensor.first_kernel, tensor.last_kernel);
    }
    return text;
}

}  // namespace contraflow
