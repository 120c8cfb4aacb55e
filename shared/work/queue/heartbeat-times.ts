export const heartbeatIntervalMs = 1_000;
/** A worker without a heartbeat for this long is considered dead. */
export const heartbeatLifetimeMs = 5_000;
