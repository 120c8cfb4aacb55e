import type { ServerResponse } from 'node:http';

const probeEvent = Symbol('probe');

/** Calls the listener when something must be written to find out whether the caller is still connected. */
export function onProbe(response: ServerResponse, listener: () => void): void {
  response.on(probeEvent, listener);
}

export function probeCaller(response: ServerResponse): void {
  response.emit(probeEvent);
}
