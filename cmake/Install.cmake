# What `cmake --install` puts in place: the program, the library for find_package(contraflow) with its public headers, the
# designs, devices, memories and sweeps, the data set, the documents. The program finds its files as
# ../share/contraflow from where it lies, so the tree can be moved; hence the fixed folder names.
include(CMakePackageConfigHelpers)

set(package_dir lib/cmake/contraflow)

install(TARGETS contraflow_program RUNTIME DESTINATION bin)
install(DIRECTORY configs traces DESTINATION share/contraflow USE_SOURCE_PERMISSIONS)
install(DIRECTORY examples DESTINATION share/contraflow)
install(DIRECTORY docs/ DESTINATION share/doc/contraflow)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION share/doc/contraflow)
install(DIRECTORY include/contraflow DESTINATION include)

# Of all components, those that a training run needs.
set(pending contraflow_training)
set(library "")
while(pending)
  list(POP_FRONT pending target)
  get_target_property(real ${target} ALIASED_TARGET)
  if(real)
    set(target ${real})
  endif()
  if(NOT target IN_LIST library)
    list(APPEND library ${target})
    get_target_property(linked ${target} INTERFACE_LINK_LIBRARIES)
    list(TRANSFORM linked REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1")
    list(FILTER linked INCLUDE REGEX "^contraflow")
    list(APPEND pending ${linked})
  endif()
endwhile()
set_target_properties(contraflow_options PROPERTIES EXPORT_NAME options)
install(TARGETS ${library} EXPORT contraflow ARCHIVE DESTINATION lib)
install(EXPORT contraflow NAMESPACE contraflow:: FILE contraflow-targets.cmake DESTINATION ${package_dir})

write_basic_package_version_file(${PROJECT_BINARY_DIR}/contraflow-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/contraflow-config.cmake ${PROJECT_BINARY_DIR}/contraflow-config-version.cmake
        DESTINATION ${package_dir})
