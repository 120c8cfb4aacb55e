/** How often a worker reports that it is alive. */
export const heartbeatIntervalMs = 1_000;
/** A worker that has not been heard of for so long is taken for dead. */
export const heartbeatLifetimeMs = 5_000;
