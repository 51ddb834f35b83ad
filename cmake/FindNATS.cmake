# NATS::nats from pkg-config or plain search. The upstream cnats config is not used: some
# distributions ship it naming an archive they do not install, which is a hard error.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(PC_NATS QUIET libnats)
endif()
find_path(NATS_INCLUDE_DIR nats/nats.h HINTS ${PC_NATS_INCLUDE_DIRS})
find_library(NATS_LIBRARY nats HINTS ${PC_NATS_LIBRARY_DIRS})
set(NATS_VERSION "${PC_NATS_VERSION}")
if(NOT NATS_VERSION AND EXISTS "${NATS_INCLUDE_DIR}/nats/version.h")
  file(STRINGS "${NATS_INCLUDE_DIR}/nats/version.h" nats_line REGEX "define +NATS_VERSION_STRING")
  string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" NATS_VERSION "${nats_line}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NATS REQUIRED_VARS NATS_LIBRARY NATS_INCLUDE_DIR VERSION_VAR NATS_VERSION
  REASON_FAILURE_MESSAGE "install libnats-dev (Debian) or build nats.c")
if(NATS_FOUND AND NOT TARGET NATS::nats)
  add_library(NATS::nats UNKNOWN IMPORTED)
  set_target_properties(NATS::nats PROPERTIES IMPORTED_LOCATION "${NATS_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${NATS_INCLUDE_DIR}")
endif()
mark_as_advanced(NATS_INCLUDE_DIR NATS_LIBRARY)
