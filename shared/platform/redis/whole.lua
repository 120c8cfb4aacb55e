-- Writes an integer with all of its digits. Lua's own conversion keeps only fourteen.

local function whole(number) return string.format('%.0f', number) end
