# contraflow_component(<name> SOURCES ... [PUBLIC ...] [PRIVATE ...]): one static library per component,
# contraflow_<name> with alias contraflow::<name>. The headers of a component are included from the source root
# (src/ or models/), public contracts from include/.
function(contraflow_component name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(contraflow_${name} STATIC ${ARG_SOURCES})
  add_library(contraflow::${name} ALIAS contraflow_${name})
  target_include_directories(
    contraflow_${name}
    PUBLIC $<INSTALL_INTERFACE:include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
           $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/models>)
  set_target_properties(contraflow_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(contraflow_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} contraflow_options)
endfunction()

# Options of every target of ours. Products and sums round separately (the contract), so fusing is off.
add_library(contraflow_options INTERFACE)
target_compile_options(contraflow_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                                                    -ffp-contract=off)
if(CONTRAFLOW_WERROR)
  target_compile_options(contraflow_options INTERFACE -Werror)
endif()
if(CONTRAFLOW_SANITIZE)
  target_compile_options(contraflow_options INTERFACE -fsanitize=${CONTRAFLOW_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(contraflow_options INTERFACE -fsanitize=${CONTRAFLOW_SANITIZE})
endif()
