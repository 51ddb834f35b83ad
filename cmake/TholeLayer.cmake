# The layers of the source tree, upper ones first. A folder may include its own headers and those of the
# folders above it, never those below: each layer is compiled with exactly these include directories, and
# tests/lint/layers.sh reads every #include line as well.
set(THOLE_LAYERS base engine/core engine/audit engine/partition/base engine/partition/log engine/partition/projection
  engine/partition/instances engine/partition engine/rows engine/worker
  platform streams projections
  runtime/metrics runtime/host runtime/cloudevents runtime/activities runtime/client runtime/reconcile
  runtime/processes/owner runtime/processes/worker runtime/processes/gateway runtime/processes/binder runtime/processes/replay runtime/processes
  testkit cli)
set(THOLE_PROTO_FOLDER "${PROJECT_BINARY_DIR}/proto")
set(THOLE_LAYER_FOLDERS "${PROJECT_SOURCE_DIR}/include")
foreach(folder IN LISTS THOLE_LAYERS)
  list(APPEND THOLE_LAYER_FOLDERS "${PROJECT_SOURCE_DIR}/${folder}")
endforeach()

# thole_layer(<target> <folder> <source>...): an object library of one layer. The sources are named one by one; what is
# in a folder and not in its list fails lint.source_lists.
function(thole_layer target folder)
  list(FIND THOLE_LAYERS "${folder}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${folder} is not one of the layers in cmake/TholeLayer.cmake")
  endif()
  math(EXPR len "${at} + 2") # include/, then all layers up to this one
  list(SUBLIST THOLE_LAYER_FOLDERS 0 ${len} folders)
  add_library(${target} OBJECT ${ARGN})
  target_include_directories(${target} PRIVATE ${folders})
  target_include_directories(${target} SYSTEM PRIVATE "${THOLE_PROTO_FOLDER}")
  target_link_libraries(${target} PRIVATE thole_flags ProtobufC::protobuf-c)
  add_dependencies(${target} thole_proto)
endfunction()
