import { useFormat } from '../lib/format.ts';
import { useCommon } from '../lib/language.tsx';
import type { Model } from '../lib/models.ts';
import { listPrices, readImagePrices, type PriceLine } from '../lib/prices.ts';

export const PriceText = ({ line: { text, roubles } }: { readonly line: PriceLine }) => {
  const common = useCommon();
  const format = useFormat();
  return <>{common.nodes(text, { price: <strong class="money">{format.price(roubles)}</strong> })}</>;
};

/** The prices that matter when choosing a model, in words. The page of the model has all. */
export function ModelPrices({
  model: { pricing, type },
}: {
  readonly model: Pick<Model, 'pricing' | 'type'>;
}) {
  const common = useCommon();
  const format = useFormat();
  const images = pricing.type === 'image' ? readImagePrices(pricing).map(({ roubles }) => roubles) : [];
  if (images.length > 0) {
    const price = (roubles: number) => <strong class="money">{format.price(roubles)}</strong>;
    const [from, to] = [Math.min(...images), Math.max(...images)];
    return (
      <p>
        {from === to
          ? common.nodes('priceImage', { price: price(from) })
          : common.nodes('priceImageRange', { from: price(from), to: price(to) })}
      </p>
    );
  }
  const lines = listPrices(pricing).filter(
    ({ text }) =>
      text !== 'priceCacheWrite' &&
      text !== 'priceCached' &&
      (text !== 'priceOutput' || type !== 'embedding'),
  );
  if (lines.every(({ roubles }) => roubles === 0)) return <p>{common('priceFree')}</p>;
  return (
    <>
      {lines.map((line) => (
        <p key={line.text}>
          <PriceText line={line} />
        </p>
      ))}
    </>
  );
}
