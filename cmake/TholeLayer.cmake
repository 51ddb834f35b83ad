# The layers of the source tree, upper ones first. A folder may include its own headers and those of the
# folders above it, never those below: each layer is compiled with exactly these include directories, and
# tests/lint/layers.sh reads every #include line as well.
set(THOLE_LAYERS engine/core engine/partition engine/worker streams projections engine/host engine/client cli)
set(THOLE_PROTO_FOLDER "${PROJECT_BINARY_DIR}/proto")
set(THOLE_LAYER_FOLDERS "${PROJECT_SOURCE_DIR}/include")
foreach(folder IN LISTS THOLE_LAYERS)
  list(APPEND THOLE_LAYER_FOLDERS "${PROJECT_SOURCE_DIR}/${folder}")
endforeach()

# Fails the configure early and in words when a layer has no sources to compile; CMake would only say that it
# cannot determine a linker language. A folder that is still empty gets one empty object instead.
function(thole_sources_or_empty target out)
  set(sources ${ARGN})
  if(NOT sources)
    set(sources "${CMAKE_CURRENT_BINARY_DIR}/${target}_empty.c")
    file(CONFIGURE OUTPUT "${sources}" CONTENT "typedef int @target@_empty;\n" @ONLY)
  endif()
  set(${out} "${sources}" PARENT_SCOPE)
endfunction()

# thole_layer(<target> <folder> <source>...): an object library of one layer.
function(thole_layer target folder)
  list(FIND THOLE_LAYERS "${folder}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${folder} is not one of the layers in cmake/TholeLayer.cmake")
  endif()
  math(EXPR len "${at} + 2") # include/, then all layers up to this one
  list(SUBLIST THOLE_LAYER_FOLDERS 0 ${len} folders)
  thole_sources_or_empty(${target} sources ${ARGN})
  add_library(${target} OBJECT ${sources})
  target_include_directories(${target} PRIVATE ${folders})
  target_include_directories(${target} SYSTEM PRIVATE "${THOLE_PROTO_FOLDER}")
  target_link_libraries(${target} PRIVATE thole_flags ProtobufC::protobuf-c)
  add_dependencies(${target} thole_proto)
endfunction()
