import Type, { type Static } from 'typebox';

const price = (what: string) => Type.Number({ description: `Per ${what}.` });
const amount = (what: string) => Type.Number({ description: what });

export const RequestRates = Type.Partial(
  Type.Object({
    prompt: price('million prompt tokens that are in none of the next two'),
    cached_prompt: price('million prompt tokens that were read from a cache'),
    cache_write: price('million prompt tokens that were written to a cache'),
    completion: price('million completion tokens, with those of reasoning'),
    image: price('image, of the quality and size that were requested'),
    second: price('second of the vendor’s processing time'),
    characters: price('million characters'),
    request: price('request'),
  }),
  {
    title: 'RequestRates',
    description:
      'The prices that the request was charged by, in roubles, whatever the model costs today. Those that do not apply are ' +
      'absent. Null if nothing was charged because the request failed, for batches, whose lines are charged one by one, and ' +
      'if the prices are not known.',
  },
);
export type RequestRates = Static<typeof RequestRates>;

export const RequestQuantities = Type.Partial(
  Type.Object({
    prompt: amount('Prompt tokens that are in none of the next two.'),
    cached_prompt: amount('Prompt tokens that were read from a cache.'),
    cache_write: amount('Prompt tokens that were written to a cache.'),
    completion: amount('Completion tokens, with those of reasoning.'),
    image: amount('Images.'),
    second: amount('Seconds of the vendor’s processing time.'),
    characters: amount('Characters.'),
    request: amount('1.'),
  }),
  {
    title: 'RequestQuantities',
    description:
      'What each rate was charged for. The sum of rate × quantity, divided by a million for tokens and characters and rounded ' +
      'half up to nine decimal places, is `cost_request` plus `shortfall`. A free request costs nothing instead. Null if ' +
      '`rates` is.',
  },
);
export type RequestQuantities = Static<typeof RequestQuantities>;
