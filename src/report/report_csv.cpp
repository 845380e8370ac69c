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
    std::string text =
        "name,class,place,ram,layout,bytes,words_occupied,bram36,uram,luts,bits_used,bits_occupied,first_kernel,"
        "last_kernel\n";
    for (const TensorReport& tensor : memory.tensors) {
        text += fmt::format("{},{},{},{},{},{},{},{:.3f},{:.3f},{:.1f},{},{:.0f},{},{}\n", tensor.name,
                            to_string(tensor.tensor_class), tensor.place, tensor.ram, tensor.layout, tensor.bytes,
                            tensor.words_occupied, tensor.blocks.bram36, tensor.blocks.urams, tensor.blocks.luts,
                            tensor.bytes * 8, tensor.bits_occupied, tensor.first_kernel, tensor.last_kernel);
    }
    return text;
}

std::string memory_timeline_csv(const MemoryReport& memory) {
    std::string text = "kernel,name";
    for (const ClassBytes& entry : memory.classes) {
        text += fmt::format(",{}_bytes", to_string(entry.tensor_class));
    }
    text += ",total_bytes\n";
    for (std::size_t i = 0; i < memory.timeline.size(); ++i) {
        const MemoryAtKernel& at = memory.timeline[i];
        text += fmt::format("{},{},{},{}\n", i, at.kernel, fmt::join(at.bytes, ","), at.total());
    }
    return text;
}

}  // namespace contraflow
