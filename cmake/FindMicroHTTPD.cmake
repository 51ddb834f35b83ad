# MicroHTTPD::microhttpd from pkg-config or plain search: libmicrohttpd has no CMake config.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(PC_MICROHTTPD QUIET libmicrohttpd)
endif()
find_path(MicroHTTPD_INCLUDE_DIR microhttpd.h HINTS ${PC_MICROHTTPD_INCLUDE_DIRS})
find_library(MicroHTTPD_LIBRARY microhttpd HINTS ${PC_MICROHTTPD_LIBRARY_DIRS})
set(MicroHTTPD_VERSION "${PC_MICROHTTPD_VERSION}")
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MicroHTTPD REQUIRED_VARS MicroHTTPD_LIBRARY MicroHTTPD_INCLUDE_DIR
  VERSION_VAR MicroHTTPD_VERSION REASON_FAILURE_MESSAGE "install libmicrohttpd-dev (Debian)")
if(MicroHTTPD_FOUND AND NOT TARGET MicroHTTPD::microhttpd)
  add_library(MicroHTTPD::microhttpd UNKNOWN IMPORTED)
  set_target_properties(MicroHTTPD::microhttpd PROPERTIES IMPORTED_LOCATION "${MicroHTTPD_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${MicroHTTPD_INCLUDE_DIR}")
endif()
mark_as_advanced(MicroHTTPD_INCLUDE_DIR MicroHTTPD_LIBRARY)
