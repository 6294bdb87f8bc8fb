-- The mirror of gcra/mod.rs. Value: the TAT alone.

local gcra = {
  params = bucket_params,
  redate = bucket_redate,
  charge = bucket_charge,
  give_back = bucket_give_back,
  encode = tat_encode,
  decode = tat_decode,
}

function gcra.admits(params, tat, now, cost)
  local whole, fraction = bucket_backlog(params, tat, now)
  return bucket_admits(params, whole, fraction, cost)
end

function gcra.decide(params, tat, now, cost, take)
  local whole, fraction = bucket_backlog(params, tat, now)
  return bucket_decide(params, whole, fraction, 0, cost, take)
end

function gcra.idle_at_us(_, tat)
  return bucket_idle_at_us(tat)
end
