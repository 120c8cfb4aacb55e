import { useMessages } from '../../lib/language.tsx';
import type { Translate } from '../../lib/messages.ts';
import type { Model } from '../../lib/models.ts';
import { Card } from '../../ui/card.tsx';
import type en from './messages.en.ts';

type Texts = Translate<typeof en>;

/** What the model accepts, what it returns and its limits. Only what the operator has stated. */
export function PropertiesCard({ model }: { readonly model: Model }) {
  const t = useMessages<typeof en>();
  return (
    <Card title={t('capabilities')}>
      <dl class="model-properties">
        {listProperties(model, t).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

function listProperties(model: Model, t: Texts): (readonly [name: string, value: string])[] {
  const list = (values: readonly string[] | null): string | null =>
    values === null || values.length === 0 ? null : values.join(', ');
  const kinds = (values: readonly string[] | null): string | null =>
    list(values?.map((value) => nameKind(value, t)) ?? null);
  const yesNo = (value: boolean | null): string | null => (value === null ? null : t(value ? 'yes' : 'no'));
  const options = (spec: Model['image_quality']): string | null =>
    list(
      spec?.choices?.map((choice) => (choice === spec.default ? t('byDefault', { choice }) : choice)) ?? null,
    );
  const isText = model.type === 'chat' || model.type === 'vision';
  const properties: readonly (readonly [string, string | null])[] = [
    [t('accepts'), kinds(model.input_modalities)],
    [t('returns'), kinds(model.output_modalities)],
    [t('context'), model.type === 'image' ? null : t('tokens', { count: model.context })],
    [t('reasoning'), isText ? (options(model.reasoning_effort) ?? yesNo(model.reasoning)) : null],
    [t('webSearch'), isText ? yesNo(model.web_search) : null],
    [t('fileTypes'), list(model.supported_file_types)],
    [t('maxFiles'), model.max_file_count === null ? null : String(model.max_file_count)],
    [t('maxImages'), model.max_image_count === null ? null : String(model.max_image_count)],
    [t('sizes'), list(model.size)],
    [t('qualities'), options(model.image_quality)],
    [t('architecture'), model.architecture],
    [t('quantization'), model.quantization],
    [t('developer'), model.owned_by],
  ];
  return properties.filter((property): property is readonly [string, string] => property[1] !== null);
}

const kindNames = ['text', 'image', 'audio', 'file', 'embedding'] as const;

function nameKind(kind: string, t: Texts): string {
  const known = kindNames.find((name) => name === kind);
  return known === undefined ? kind : t(`kind_${known}`);
}
