-- decision 0096
--
-- Whether an account may use a model: `models` and `ownersModels` are its fields `mod` and `omod`, `,a,b,`, or false if all
-- are allowed.
local function isModelAllowed(model, models, ownersModels)
  local name = ',' .. model .. ','
  return (not models or string.find(models, name, 1, true))
    and (not ownersModels or string.find(ownersModels, name, 1, true))
end
