# LibYAML::yaml from pkg-config or plain search: libyaml has no CMake config.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(PC_LIBYAML QUIET yaml-0.1)
endif()
find_path(LibYAML_INCLUDE_DIR yaml.h HINTS ${PC_LIBYAML_INCLUDE_DIRS})
find_library(LibYAML_LIBRARY yaml HINTS ${PC_LIBYAML_LIBRARY_DIRS})
set(LibYAML_VERSION "${PC_LIBYAML_VERSION}")
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibYAML REQUIRED_VARS LibYAML_LIBRARY LibYAML_INCLUDE_DIR
  VERSION_VAR LibYAML_VERSION REASON_FAILURE_MESSAGE "install libyaml-dev (Debian)")
if(LibYAML_FOUND AND NOT TARGET LibYAML::yaml)
  add_library(LibYAML::yaml UNKNOWN IMPORTED)
  set_target_properties(LibYAML::yaml PROPERTIES IMPORTED_LOCATION "${LibYAML_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LibYAML_INCLUDE_DIR}")
endif()
mark_as_advanced(LibYAML_INCLUDE_DIR LibYAML_LIBRARY)
