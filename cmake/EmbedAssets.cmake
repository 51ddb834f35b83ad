# cmake -DOUT=assets_data.c -DFOLDER=assets -P EmbedAssets.cmake
# Writes what console/assets.h declares: each file of the folder as an array of byte values, by name; and OUT.d, which
# says that they, and the folder itself, are what OUT is made of.
cmake_minimum_required(VERSION 3.22)
file(GLOB files LIST_DIRECTORIES false "${FOLDER}/*")
list(SORT files)
set(arrays "")
set(rows "")
set(number 0)
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "(................................................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${bytes}")
  string(APPEND arrays "static const uint8_t file_${number}[] = {\n${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", file_${number}, sizeof file_${number} - 1},\n")
  math(EXPR number "${number} + 1")
endforeach()
set(text "/* Written by cmake/EmbedAssets.cmake from console/assets. */
#include \"assets.h\"

${arrays}
const struct asset assets[] = {
${rows}};
const size_t assets_len = ${number};
")
string(REPLACE ";" " " needs "${files}")
file(WRITE "${OUT}.d" "${OUT}: ${FOLDER} ${needs}\n")
file(WRITE "${OUT}.new" "${text}")
file(RENAME "${OUT}.new" "${OUT}")
