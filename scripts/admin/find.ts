import { findAnything } from '../../shared/admin/find-anything.ts';
import type { AdminVerb } from './command.ts';

export const findVerbs: Record<string, AdminVerb> = {
  '': {
    usage: '<text>',
    help:
      'finds what a customer names: the id of anything, an API key, a refill code, an address, or the beginning of a word of ' +
      'the name or note of an account',
    positionals: 1,
    options: [],
    run: (context) => findAnything(context, context.positionals[0]!),
  },
};
