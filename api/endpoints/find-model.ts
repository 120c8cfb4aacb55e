import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { AppError, invalidField } from '../../shared/contract/errors.ts';
import type { ModelType } from '../../shared/contract/models.ts';
import { shorten } from '../../shared/runtime/shorten.ts';
import type { Services } from '../services.ts';

/**
 * The model a request names, by its id or its alternative id.
 * @throws AppError `model_not_found`; `validation_failed` where it is of another type; `model_disabled`
 */
export function findModel({ catalog }: Services, id: string, types: readonly ModelType[]): CatalogModel {
  const model = catalog.find(id);
  if (model === undefined) {
    throw new AppError('model_not_found', {
      message: `There is no model "${shorten(id)}". GET /v1/models lists those there are.`,
      issues: [
        {
          loc: ['body', 'model'],
          msg: 'There is no such model: GET /v1/models lists those there are.',
          type: 'model_not_found',
        },
      ],
    });
  }
  if (!types.includes(model.type)) {
    throw invalidField(
      ['body', 'model'],
      `"${id}" is a model of type ${model.type}; this operation takes ${types.join(' or ')}.`,
    );
  }
  if (!catalog.isActive(model)) {
    throw invalidField(
      ['body', 'model'],
      `The model "${id}" is switched off, or no vendor serves it now. Choose one that GET /v1/models shows as active, ` +
        'or try again later.',
      { code: 'model_disabled' },
    );
  }
  return model;
}
