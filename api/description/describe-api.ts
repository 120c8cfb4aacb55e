import { operations } from '../contract/operations.ts';
import { buildDescription } from './build-description.ts';
import type { Description } from './description.ts';

/** Describes all operations of the API. @param serverUrl the server's public address */
export const describeApi = (serverUrl: string): Description =>
  buildDescription(Object.values(operations), serverUrl);
