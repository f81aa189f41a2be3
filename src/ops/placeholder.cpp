namespace cytra {}
