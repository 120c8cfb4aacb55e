import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import type { Model } from '../../lib/models.ts';
import { listPrices, listTokenLines, readImagePrices, type PriceLine } from '../../lib/prices.ts';
import { Card } from '../../ui/card.tsx';
import { PriceText } from '../../ui/model-prices.tsx';
import { Table } from '../../ui/table.tsx';
import type en from './messages.en.ts';

const Lines = ({ lines }: { readonly lines: readonly PriceLine[] }) => (
  <ul class="model-lines">
    {lines.map((line) => (
      <li key={line.text}>
        <PriceText line={line} />
      </li>
    ))}
  </ul>
);

/** Everything that is charged for, in words. */
export function PriceCard({ model }: { readonly model: Model }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { pricing } = model;
  const images = readImagePrices(pricing);
  const lines = listPrices(pricing).filter(
    ({ text }) => model.type !== 'embedding' || text !== 'priceOutput',
  );
  const overrides = (pricing.overrides ?? []).toSorted((a, b) => a.min_prompt_tokens - b.min_prompt_tokens);
  return (
    <Card title={t('prices')}>
      <Lines lines={lines} />
      {overrides.map((override) => (
        <div key={override.min_prompt_tokens} class="model-override">
          <h3>{t('longPrompts', { count: override.min_prompt_tokens })}</h3>
          <Lines lines={listTokenLines(override)} />
        </div>
      ))}
      <ul class="model-notes">
        {pricing.free_requests && <li>{t('freeRequests')}</li>}
        {model.rpm_coefficient > 1 && <li>{t('rpm', { count: model.rpm_coefficient })}</li>}
        <li>{t('priceSince', { day: format.fullDay(pricing.date_of_use) })}</li>
      </ul>
      {images.length > 0 && (
        <Table
          caption={t('imagePrices')}
          rows={images}
          keyOf={({ quality, size }) => `${quality} ${size ?? ''}`}
          columns={[
            { name: t('quality'), isHeader: true, render: ({ quality }) => quality },
            { name: t('size'), render: ({ size }) => size ?? t('anySize') },
            { name: t('pricePerImage'), isNumber: true, render: ({ roubles }) => format.price(roubles) },
          ]}
        />
      )}
    </Card>
  );
}
