# ProtobufC::protobuf-c, and protobuf_c_generate(<target> <file.proto>...) to add generated code to a target.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(PC_PROTOBUF_C QUIET libprotobuf-c)
endif()
find_path(ProtobufC_INCLUDE_DIR protobuf-c/protobuf-c.h HINTS ${PC_PROTOBUF_C_INCLUDE_DIRS})
find_library(ProtobufC_LIBRARY protobuf-c HINTS ${PC_PROTOBUF_C_LIBRARY_DIRS})
find_program(ProtobufC_COMPILER NAMES protoc-c protoc)
set(ProtobufC_VERSION "${PC_PROTOBUF_C_VERSION}")
set(protobuf_c_required ProtobufC_LIBRARY ProtobufC_INCLUDE_DIR)
if(NOT ProtobufC_RUNTIME_ONLY) # whoever links an installed static libthole generates nothing
  list(APPEND protobuf_c_required ProtobufC_COMPILER)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ProtobufC REQUIRED_VARS ${protobuf_c_required} VERSION_VAR ProtobufC_VERSION
  REASON_FAILURE_MESSAGE "install libprotobuf-c-dev and protobuf-c-compiler (Debian)")
if(ProtobufC_FOUND AND NOT TARGET ProtobufC::protobuf-c)
  add_library(ProtobufC::protobuf-c UNKNOWN IMPORTED)
  set_target_properties(ProtobufC::protobuf-c PROPERTIES IMPORTED_LOCATION "${ProtobufC_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${ProtobufC_INCLUDE_DIR}")
endif()
mark_as_advanced(ProtobufC_INCLUDE_DIR ProtobufC_LIBRARY ProtobufC_COMPILER)

function(protobuf_c_generate target)
  foreach(proto IN LISTS ARGN)
    get_filename_component(stem "${proto}" NAME_WE)
    set(out "${CMAKE_CURRENT_BINARY_DIR}/${stem}.pb-c")
    add_custom_command(OUTPUT "${out}.c" "${out}.h"
      COMMAND "${ProtobufC_COMPILER}" "--c_out=${CMAKE_CURRENT_BINARY_DIR}" "-I${CMAKE_CURRENT_SOURCE_DIR}" "${proto}"
      DEPENDS ${ARGN} WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" VERBATIM
      COMMENT "Generating ${stem}.pb-c.c")
    target_sources(${target} PRIVATE "${out}.c" "${out}.h")
  endforeach()
endfunction()
